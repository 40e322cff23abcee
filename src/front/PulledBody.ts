import type { BodyEnd, RawBody } from "./RawRoute.ts"

/** An engine's side of a body that is pulled. */
export interface BodySource {
  readonly declaredBytes: number | undefined
  /** Calls `take` once: with the next bytes, or with the end of the body. Until then the socket is read. */
  next(take: (piece: Uint8Array | BodyEnd) => void): void
}

/** A body of no bytes, for requests without one. */
const noBody: BodySource = { declaredBytes: 0, next: (take) => take("complete") }

/** The body of a request to a raw route on either engine, held to its longest length. */
export class PulledBody implements RawBody {
  private readonly source: BodySource
  private readonly maxBytes: number
  private pulledBytes = 0
  private end: BodyEnd | undefined

  constructor(source: BodySource | undefined, maxBytes: number) {
    this.source = source ?? noBody
    this.maxBytes = maxBytes
  }

  get declaredBytes(): number | undefined {
    return this.source.declaredBytes
  }

  pull(): Promise<Uint8Array | BodyEnd> {
    const { end } = this
    if (end !== undefined) return Promise.resolve(end)
    return new Promise((resolve) => this.source.next((piece) => resolve(this.taken(piece))))
  }

  private taken(piece: Uint8Array | BodyEnd): Uint8Array | BodyEnd {
    if (typeof piece === "string") {
      this.end = piece
      return piece
    }
    this.pulledBytes += piece.length
    if (this.pulledBytes <= this.maxBytes) return piece
    this.end = "tooLong"
    return this.end
  }
}
