const mainId = "main"

/** Past the head of the page, for the keyboard; the address bar is the view's and stays as it is. */
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
