/** Buffers that a burst needed are freed once so much time has passed without a use of them. */
const usualRestMillis = 60_000

/** How many buffers are kept. */
export interface Kept {
  /** always */
  readonly most: number
  /** for a while, since bursts need them; absent: no more */
  readonly burstMost?: number
}

/**
 * Buffers of one length that are used again. New memory for each use costs page faults, and what was used stays until it is
 * collected: the memory of slow clients was mostly that. And as few as 20 MiB of it have V8 collect everything.
 */
export class KeptBuffers {
  readonly bytes: number
  private readonly kept: Array<Buffer> = []
  private readonly most: number
  private readonly burstMost: number
  private readonly restMillis: number
  /** the fewest that were here since the last rest */
  private unused = 0
  private rest: ReturnType<typeof setTimeout> | undefined

  constructor(bytes: number, { burstMost, most }: Kept, restMillis = usualRestMillis) {
    this.bytes = bytes
    this.most = most
    this.burstMost = burstMost ?? most
    this.restMillis = restMillis
  }

  /** that wait for a use */
  get count(): number {
    return this.kept.length
  }

  take(): Buffer {
    const buffer = this.kept.pop()
    this.unused = Math.min(this.unused, this.kept.length)
    return buffer ?? Buffer.allocUnsafeSlow(this.bytes)
  }

  /** It, or a part of it, is not looked at any more. Memory of another length is not kept. */
  giveBack({ buffer }: Uint8Array): void {
    if (buffer.byteLength !== this.bytes) return
    if (this.kept.length >= this.burstMost) return free(buffer)
    this.kept.push(Buffer.from(buffer))
    this.restLater()
  }

  private restLater(): void {
    if (this.kept.length <= this.most) return
    this.rest ??= setTimeout(() => this.freeUnused(), this.restMillis).unref()
  }

  private freeUnused(): void {
    this.rest = undefined
    const going = Math.min(this.unused, this.kept.length - this.most)
    for (const { buffer } of this.kept.splice(0, going)) free(buffer)
    this.unused = this.kept.length
    this.restLater()
  }
}

/** Its memory goes at once, without a collection. */
const free = (buffer: ArrayBufferLike): void => {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}
