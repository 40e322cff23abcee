/** A part of a message that a model is speaking: what its pieces have in common. Source: contract/agents#server-frames. */
export class SpokenPart {
  readonly messageId: string
  readonly #kind: string
  readonly #contentIndex: number
  /** of every piece's frame, what stands between its number and its text: written once, not for each of thousands */
  readonly #middle: string

  constructor(
    promptId: string,
    kind: "text_delta" | "thinking_delta",
    messageId: string,
    contentIndex: number
  ) {
    this.messageId = messageId
    this.#kind = kind
    this.#contentIndex = contentIndex
    const fields = JSON.stringify({ promptId, kind, messageId, contentIndex })
    this.#middle = `,${fields.slice(1, -1)},"delta":`
  }

  is(kind: string, messageId: string, contentIndex: number): boolean {
    return this.messageId === messageId && this.#contentIndex === contentIndex && this.#kind === kind
  }

  /** The frame of a piece, as JSON. */
  frame(seq: number, delta: string): string {
    return `{"type":"event","seq":${seq}${this.#middle}${JSON.stringify(delta)}}`
  }
}
