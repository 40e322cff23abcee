import type { Attachment, Email } from "postal-mime"
import { useEffect, useState } from "preact/hooks"
import { useTurns } from "../api/UseAnswer.ts"
import { Asking } from "../parts/Asking.tsx"

interface InboxCopyProps {
  /** of the delivery */
  readonly id: string
}

interface Copy {
  readonly source: string
  readonly mail: Email
}

/** One recipient's copy: its HTML in a frame that can do nothing, its text, its files and its source. */
export const InboxCopy = ({ id }: InboxCopyProps) => {
  const path = `/api/v1/emails/inbox/${id}`
  const [copy, setCopy] = useState<Copy>()
  const refused = useTurns(path, () => async (ask, signal) => {
    const { default: PostalMime } = await import("postal-mime")
    const bytes = await (await ask.open(path, { signal })).arrayBuffer()
    setCopy({ mail: await PostalMime.parse(bytes), source: new TextDecoder("latin1").decode(bytes) })
    return undefined
  })
  if (copy === undefined) return <Asking what="the mail" isRefused={refused !== undefined} />
  const { mail, source } = copy
  return (
    <div class="mail-detail">
      {mail.html !== undefined && <iframe title="HTML of the mail" sandbox="" srcdoc={mail.html} />}
      {mail.text !== undefined && <pre class="mail-text">{mail.text}</pre>}
      {mail.attachments.length > 0 && (
        <ul aria-label="Attachments">
          {mail.attachments.map((attachment, index) => (
            <li key={index}>
              <AttachmentLink attachment={attachment} />
            </li>
          ))}
        </ul>
      )}
      <details>
        <summary>Source</summary>
        <pre class="mail-text">{source}</pre>
      </details>
    </div>
  )
}

/** A download: the type of a stranger's file is not believed. */
const AttachmentLink = ({ attachment: { content, filename } }: { readonly attachment: Attachment }) => {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const made = URL.createObjectURL(
      new Blob([typeof content === "string" ? content : new Uint8Array(content)], {
        type: "application/octet-stream"
      })
    )
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [content])
  const name = filename ?? "attachment"
  return url === undefined ? (
    <span>{name}</span>
  ) : (
    <a href={url} download={name}>
      {name}
    </a>
  )
}
