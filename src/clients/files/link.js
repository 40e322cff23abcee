/* Page of a share link: says that a download has begun. Without this script all of it works. */

const form = document.querySelector("form")
const state = form?.querySelector(".state")

form?.addEventListener("submit", () => {
  const button = form.querySelector("button")
  // The browser sends the form first. A download leaves the page as it is.
  setTimeout(() => {
    if (button !== null) button.disabled = true
    if (state) state.textContent = "The download begins. If it does not, load this page again."
  })
})

// A page that comes back from the browser's memory is as it was at first.
addEventListener("pageshow", ({ persisted }) => {
  if (!persisted) return
  const button = form?.querySelector("button")
  if (button) button.disabled = false
  if (state) state.textContent = ""
})
