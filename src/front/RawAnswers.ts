import type { EarlyAnswer } from "./EarlyAnswer.ts"
import { attempt, type HotContext } from "./HotAnswer.ts"
import type { Headers } from "./HeaderBlock.ts"
import type { HotStream } from "./HotRoute.ts"
import { deadStream, type PieceStream } from "./PieceStream.ts"
import type { ByteSource, FileSent } from "./RawRoute.ts"

/** An exchange of a raw route on either engine, as the answers see it that may have to wait for a body. */
interface RawSide {
  readonly method: string
  readonly aborted: boolean
  readonly early: EarlyAnswer
  send(status: number, headers: Headers): void
  cut(): void
}

/** `begin`: nothing more is in the way of the bytes. `headAlone`: only their length is to be told. */
interface SourceAnswer {
  readonly source: ByteSource
  readonly sent: FileSent | undefined
  readonly begin: (sent: FileSent) => void
  readonly headAlone: (length: number) => void
}

/** The answer out of a source, which is closed whatever becomes of it. */
export const answerSource = (
  side: RawSide,
  context: HotContext,
  { begin, headAlone, sent, source }: SourceAnswer
): void => {
  const length = Math.max(source.to - source.from, 0)
  const tell: FileSent = (bytes, isWhole) => attempt(() => sent?.(bytes, isWhole), context)
  if (side.early.isChosen || side.aborted) {
    source.close()
    return tell(0, false)
  }
  if (side.method === "HEAD" || length === 0) {
    source.close()
    headAlone(length)
    return tell(0, true)
  }
  side.early.choose((ending) => {
    if (ending === "keep" && !side.aborted) return begin(tell)
    source.close()
    tell(0, false)
    side.cut()
  })
}

/** A streamed answer: its pieces wait for the body. */
export const answerStream = (
  side: RawSide,
  status: number,
  headers: Headers,
  open: () => PieceStream | undefined
): HotStream => {
  const { early } = side
  if (side.method === "HEAD") side.send(status, headers)
  const pieces = early.isChosen || side.aborted ? undefined : open()
  if (pieces === undefined) return deadStream
  const { isReady } = early
  pieces.isBehind = !isReady
  early.choose((ending) => {
    if (ending !== "keep") side.cut()
    else if (!isReady) pieces.writable()
  })
  return pieces
}
