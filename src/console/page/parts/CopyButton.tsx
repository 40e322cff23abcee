import { useEffect, useState } from "preact/hooks"

/** Copies a text; without the clipboard (a page that is not served over https) it selects the text instead. */
export const CopyButton = ({ of, textId }: { readonly of: string; readonly textId: string }) => {
  const [outcome, setOutcome] = useState<string>()

  useEffect(() => {
    if (outcome === undefined) return
    const timer = setTimeout(() => setOutcome(undefined), 4_000)
    return () => clearTimeout(timer)
  }, [outcome])

  const copy = async (): Promise<void> => {
    const element = document.getElementById(textId)
    if (element === null) return
    try {
      await navigator.clipboard.writeText(element.textContent ?? "")
      setOutcome("Copied")
    } catch {
      // Refused, or not there at all: the user copies the selected text.
      getSelection()?.selectAllChildren(element)
      setOutcome("Selected")
    }
  }
  return (
    <button type="button" class="copy" onClick={() => void copy()} aria-label={`Copy the ${of}`}>
      <span role="status">{outcome ?? "Copy"}</span>
    </button>
  )
}
