import type { UwsRequest } from "./Addon.ts"
import { isChunkedAlone, saysClose } from "./RequestHead.ts"

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
  /** bits for the lengths of the names, so that most headers are not compared */
  private lengths = 0
  private hasLength = false
  private hasHost = false

  read(request: UwsRequest, wanted: WantedHeaders): this {
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
    request.forEach(this.visit)
    return this
  }

  private readonly visit = (name: string, value: string): void => {
    if ((this.lengths & (1 << name.length)) === 0) return
    if (name === "content-length") this.readLength(value)
    else if (name === "transfer-encoding") this.readCoding(value)
    else if (name === "connection") this.isLast ||= saysClose(value)
    else if (name === "host") this.readHost()
    else if (name === "origin") this.origin ||= value
    else if (name === "x-forwarded-for")
      this.forwardedFor = this.forwardedFor === "" ? value : `${this.forwardedFor},${value}`
    const index = this.names.indexOf(name)
    if (index >= 0) this.values[index] ||= value
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
export interface WantedHeaders {
  readonly names: ReadonlyArray<string>
  /** a bit for each length of a name that matters, so that most headers are not compared with any */
  readonly lengths: number
}

const always = ["content-length", "transfer-encoding", "connection", "host", "origin", "x-forwarded-for"]

/** `names`: lower case */
export const wantedHeaders = (names: ReadonlyArray<string>): WantedHeaders => ({
  names,
  lengths: [...always, ...names].reduce((bits, name) => bits | (1 << name.length), 0)
})

const head = new HotHead()

/** One head for all requests: reading is synchronous, so that there is only ever one. */
export const readHotHead = (request: UwsRequest, wanted: WantedHeaders): Readonly<HotHead> =>
  head.read(request, wanted)
