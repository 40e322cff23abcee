import { useId } from "preact/hooks"
import { CopyButton } from "./CopyButton.tsx"

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
