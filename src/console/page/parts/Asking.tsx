interface AskingProps {
  /** such as `your sites` */
  readonly what: string
  /** the server was asked, and did not tell; the note above the page says why */
  readonly isRefused: boolean
}

/** Stands in for data that the server has not sent yet. */
export const Asking = ({ isRefused, what }: AskingProps) => (
  <p class="hint quiet">{isRefused ? `No answer about ${what} yet.` : `Asking for ${what} …`}</p>
)
