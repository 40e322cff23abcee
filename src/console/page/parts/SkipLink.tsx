const mainId = "main"

/** Skips the head of the page, for keyboard users; the address bar belongs to the view and stays as it is. */
export const SkipLink = () => (
  <a
    href={`#${mainId}`}
    class="skip"
    onClick={(event) => {
      event.preventDefault()
      document.getElementById(mainId)?.focus()
    }}
  >
    Skip to the content
  </a>
)
