import type { BodyFormat } from "#schemas/notify/Message.ts"

/** A message's body as it is stored. */
export interface Body {
  /** of an object or an array its compact JSON */
  readonly text: string
  readonly format: BodyFormat
}

/** A format that a body is shown in. */
export type ShownFormat = Exclude<BodyFormat, "auto">

/** A body as HTML. */
export interface RenderedBody {
  readonly format: ShownFormat
  /** Has the elements and attributes of contract/notify#bodies and no other, whatever the body is. */
  readonly html: string
  /** a sentence for its reader, where it is not shown as its sender asked, or not in full colour */
  readonly remark: string | undefined
}

/** Elements that mark words of one body. Browsers bear some ten thousands; the text behind them goes on without. */
export const marksMax = 50_000

/** A longer address is no link. */
export const hrefMax = 2_048

export const reducedRemark = `Too many marks: the text is whole, but what follows the first ${marksMax} is not coloured.`
