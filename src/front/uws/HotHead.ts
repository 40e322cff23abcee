import type { UwsRequest } from "./Addon.ts"
import { isChunkedAlone, saysClose } from "../RequestHead.ts"

/**
 * The head of a request to a hot route, read in one pass and without an object of its own: asking for each header by its
 * name would miss a second line of the same name, and costs a call into native code for each that is not there. Valid
 * until the next request is read.
 */
export class HotHead {
  /** of the headers that were asked for; "" where there is none. The first line of a name counts */
  values: Array<string> = []
  /** "" where there is none */
  contentLength = ""
  origin = ""
  /** all lines as one list: a proxy may add a line of its own below the one that the client made up */
  forwardedFor = ""
  isChunked = false
  /** the client wants no other answer on this connection */
  isLast = false
  /** as in `RequestHead` */
  isAmbiguous = false
  private names: ReadonlyArray<string> = []
  /** bits for the lengths of the names */
  private lengths = 0
  private hasLength = false
  private hasHost = false

  read(request: UwsRequest, wanted: WantedHeaders): this {
    this.reset(wanted)
    request.forEach(this.visit)
    return this
  }

  /** Adds name and value of each header to `all`. */
  readAll(request: UwsRequest, all: Array<string>): this {
    this.reset(nothing)
    request.forEach((name, value) => {
      all.push(name, value)
      this.visit(name, value)
    })
    return this
  }

  private reset(wanted: WantedHeaders): void {
    this.names = wanted.names
    this.lengths = wanted.lengths
    this.values = wanted.names.map(() => "")
    this.contentLength = ""
    this.origin = ""
    this.forwardedFor = ""
    this.isChunked = false
    this.isLast = false
    this.isAmbiguous = false
    this.hasLength = false
    this.hasHost = false
  }

  /** The length tells a name from most others without a comparison: this runs for every header of an event. */
  private readonly visit = (name: string, value: string): void => {
    const { length } = name
    switch (length) {
      case 4:
        if (name === "host") this.readHost()
        break
      case 6:
        if (name === "origin") this.origin ||= value
        break
      case 10:
        if (name === "connection") this.isLast ||= saysClose(value)
        break
      case 14:
        if (name === "content-length") this.readLength(value)
        break
      case 15:
        if (name === "x-forwarded-for") this.readForwardedFor(value)
        break
      case 17:
        if (name === "transfer-encoding") this.readCoding(value)
        break
      default:
    }
    if ((this.lengths & (1 << length)) === 0) return
    const { names, values } = this
    for (let index = 0; index < names.length; index++) {
      if (names[index] === name) values[index] ||= value
    }
  }

  private readForwardedFor(value: string): void {
    this.forwardedFor = this.forwardedFor === "" ? value : `${this.forwardedFor},${value}`
  }

  private readLength(value: string): void {
    this.isAmbiguous ||= this.hasLength || value === ""
    this.hasLength = true
    this.contentLength = value
  }

  private readCoding(value: string): void {
    this.isAmbiguous ||= this.isChunked || !isChunkedAlone(value)
    this.isChunked = true
  }

  private readHost(): void {
    this.isAmbiguous ||= this.hasHost
    this.hasHost = true
  }
}

/** Headers that a hot route asks for, and how they are found. */
interface WantedHeaders {
  readonly names: ReadonlyArray<string>
  /** a bit for each length of a name, so that most headers are not compared with any */
  readonly lengths: number
}

/** `names`: lower case */
export const wantedHeaders = (names: ReadonlyArray<string>): WantedHeaders => ({
  names,
  lengths: names.reduce((bits, name) => bits | (1 << name.length), 0)
})

const nothing = wantedHeaders([])

const head = new HotHead()

/** The head of a request to a raw route. `head` is valid until the next request is read. */
export interface FullHead {
  readonly head: Readonly<HotHead>
  /** as in `RawRequest` */
  readonly headers: ReadonlyArray<string>
}

/** One head for all requests: reading is synchronous, so that there is only ever one. */
export const readHotHead = (request: UwsRequest, wanted: WantedHeaders): Readonly<HotHead> =>
  head.read(request, wanted)

export const readFullHead = (request: UwsRequest): FullHead => {
  const headers: Array<string> = []
  return { head: head.readAll(request, headers), headers }
}
