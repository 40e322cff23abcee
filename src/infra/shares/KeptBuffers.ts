/**
 * Buffers of one length that are used again. New memory for each use costs page faults, and what was used stays until it is
 * collected: the memory of slow clients was mostly that.
 */
export class KeptBuffers {
  readonly bytes: number
  private readonly most: number
  private readonly kept: Array<Buffer> = []

  /** @param most so many are kept; others are left to the collector */
  constructor(bytes: number, most: number) {
    this.bytes = bytes
    this.most = most
  }

  take(): Buffer {
    return this.kept.pop() ?? Buffer.allocUnsafeSlow(this.bytes)
  }

  /** It, or a part of it, is not looked at any more. Memory of another length is not kept. */
  giveBack({ buffer }: Uint8Array): void {
    if (buffer.byteLength === this.bytes && this.kept.length < this.most) this.kept.push(Buffer.from(buffer))
  }
}
