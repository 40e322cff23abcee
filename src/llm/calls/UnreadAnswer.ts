/** Bytes of an answer that are not shown as they come: an error, a whole answer, or the beginning of a stream. */
export class UnreadAnswer {
  readonly #pieces: Array<Buffer> = []
  #bytes = 0
  #form: "unknown" | "events" | "whole" = "unknown"

  /** false: they are more than so many */
  add(bytes: Buffer, bytesMax: number): boolean {
    this.#bytes += bytes.length
    if (this.#bytes > bytesMax) return false
    this.#pieces.push(bytes)
    return true
  }

  bytes(): Buffer {
    return Buffer.concat(this.#pieces)
  }

  text(): string {
    return this.bytes().toString("utf8")
  }

  /** A JSON object begins with a brace, which no line of an event stream does. */
  form(): "unknown" | "events" | "whole" {
    if (this.#form !== "unknown") return this.#form
    // The first bytes that are more than blanks and a byte order mark decide.
    const text = this.text()
    if (!/^[\s\uFEFF]*$/.test(text)) this.#form = /^[\s\uFEFF]*\{/.test(text) ? "whole" : "events"
    return this.#form
  }
}
