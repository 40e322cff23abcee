import type { Attachment } from "postal-mime"
import { useEffect, useState } from "preact/hooks"

/** A download: the type of a stranger's file is not believed. */
export const AttachmentLink = ({
  attachment: { content, filename, mimeType }
}: {
  readonly attachment: Attachment
}) => {
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
  return (
    <span>
      {url === undefined ? (
        name
      ) : (
        <a href={url} download={name}>
          {name}
        </a>
      )}{" "}
      <span class="hint">{mimeType}</span>
    </span>
  )
}
