import { useEffect, useId, useState } from "preact/hooks"

/** A text to be copied into a page or a terminal. */
export const Code = ({ of, text }: { readonly of: string; readonly text: string }) => {
  const id = useId()
  return (
    <div class="code">
      <pre>
        <code id={id}>{text}</code>
      </pre>
      <CopyButton of={of} textId={id} />
    </div>
  )
}

/** Copies a text; without the clipboard (a page that is not served over https) it selects the text instead. */
const CopyButton = ({ of, textId }: { readonly of: string; readonly textId: string }) => {
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
