import { useEffect, useState } from "preact/hooks"
import { useSession } from "../../api/Session.ts"
import { formatBytes } from "../Words.ts"
import { previewKindOf } from "./PreviewKind.ts"

interface PreviewProps {
  /** of the version */
  readonly id: string
  readonly name: string
  readonly mimeType: string
  readonly size: number
  readonly isEncrypted: boolean
}

/** Shows a file. The browser asks for it by the session's cookie, and nothing in it runs. */
export const Preview = (props: PreviewProps) => {
  const { id, isEncrypted, mimeType, name, size } = props
  const [isBroken, setBroken] = useState(false)
  const source = `/api/files/${id}`
  const onError = (): void => setBroken(true)
  if (isEncrypted) return <NoPreview why="It is encrypted: only its owner’s programs can open it." />
  if (isBroken) return <NoPreview why="This browser cannot show it." />
  if (size === 0) return <NoPreview why="The file is empty." />
  switch (previewKindOf(mimeType, name)) {
    case "image":
      return <img class="preview-image" src={source} alt={name} onError={onError} />
    case "audio":
      return <audio class="preview-audio" src={source} controls preload="metadata" onError={onError} />
    case "video":
      return <video class="preview-video" src={source} controls preload="metadata" onError={onError} />
    case "pdf":
      return <iframe class="preview-pdf" src={source} title={name} />
    case "text":
      return <TextPreview source={source} size={size} />
    default:
      return <NoPreview why="Files of this type are not shown here. Download it to open it." />
  }
}

const NoPreview = ({ why }: { readonly why: string }) => <p class="hint preview-none">{why}</p>

const shownBytes = 256 * 1024

const TextPreview = ({ size, source }: { readonly source: string; readonly size: number }) => {
  const { ask } = useSession()
  const [text, setText] = useState<string>()
  const [isBroken, setBroken] = useState(false)
  useEffect(() => {
    const controller = new AbortController()
    const load = async (): Promise<void> => {
      const headers = { range: `bytes=0-${shownBytes - 1}` }
      const { signal } = controller
      const response = await ask.open(source, { headers, signal })
      // A server in between may not know ranges, and send all.
      const bytes = (await response.arrayBuffer()).slice(0, shownBytes)
      setText(new TextDecoder().decode(bytes, { stream: size > shownBytes }))
    }
    load().catch(() => {
      if (!controller.signal.aborted) setBroken(true)
    })
    return () => controller.abort()
  }, [ask, source, size])
  if (isBroken)
    return <NoPreview why="The server did not send the text. Download the file, or try again later." />
  return (
    <figure class="preview-text" aria-busy={text === undefined}>
      <pre tabIndex={0} aria-label="Text of the file">
        {text}
      </pre>
      {size > shownBytes && (
        <figcaption class="hint">
          The first {formatBytes(shownBytes)} of {formatBytes(size)}.
        </figcaption>
      )}
    </figure>
  )
}
