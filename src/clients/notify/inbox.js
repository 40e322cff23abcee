// Runs in the page of the sandbox's inbox: shows what comes as it comes, and clears on request.
const place = () => document.querySelector("#inbox")

const show = async () => {
  const answer = await fetch("/")
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("#inbox")
  if (!answer.ok || fresh === null) return
  // The open ones stay open.
  const open = new Set(Array.from(document.querySelectorAll("#inbox details[open]"), ({ id }) => id))
  for (const details of fresh.querySelectorAll("details")) details.open = open.has(details.id)
  place().replaceWith(fresh)
}

const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

document.addEventListener("click", async ({ target }) => {
  if (!(target instanceof Element) || target.closest("#clear") === null) return
  await fetch("/inbox", { method: "DELETE" })
  await show()
  // The button is a new one.
  document.querySelector("#clear")?.focus()
})

for (;;) {
  try {
    const answer = await fetch(`/inbox?limit=1&waitMillis=25000&after=${place().dataset.last}`)
    const { entries } = await answer.json()
    if (entries.length > 0) await show()
    // Many that come at once are shown together.
    await pause(answer.ok ? 300 : 5_000)
  } catch {
    // The sandbox is away: it may come back at this address.
    await pause(2_000)
  }
}
