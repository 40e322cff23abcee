import { DefaultDeserializer, DefaultSerializer } from "node:v8"

/**
 * Values on a stream between processes. A frame is the number of its parts, their lengths (each 32 bits, little-endian) and
 * the parts: the value as `node:v8` clones it, then its byte arrays, which are neither copied nor cloned on their way out.
 * Of typed arrays a value has `Uint8Array` alone.
 */
export const frameOf = (value: unknown): ReadonlyArray<Uint8Array> => {
  const writer = new ValueWriter()
  writer.writeHeader()
  writer.writeValue(value)
  const parts = [writer.releaseBuffer(), ...writer.bytes]
  const head = Uint32Array.of(parts.length, ...parts.map(({ byteLength }) => byteLength))
  return [new Uint8Array(head.buffer), ...parts]
}

class ValueWriter extends DefaultSerializer {
  readonly bytes: Array<Uint8Array> = []

  /** Called by the serializer for every array of bytes. */
  _writeHostObject(view: ArrayBufferView): void {
    if (!(view instanceof Uint8Array)) throw new Error(`a ${view.constructor.name} cannot be sent`)
    this.writeUint32(this.bytes.push(view))
  }
}

class ValueReader extends DefaultDeserializer {
  readonly #parts: ReadonlyArray<Uint8Array>

  constructor(parts: ReadonlyArray<Uint8Array>) {
    super(parts[0] ?? new Uint8Array())
    this.#parts = parts
  }

  _readHostObject(): Uint8Array | undefined {
    return this.#parts[this.readUint32()]
  }
}

/** Reads frames from pieces of any size. One of more than `bytesMax` throws. */
export class FrameReader {
  readonly #onValue: (value: unknown) => void
  readonly #bytesMax: number
  #frame: Generator<number, unknown, Uint8Array>
  #wanted: Uint8Array
  #filled = 0

  constructor(onValue: (value: unknown) => void, bytesMax: number) {
    this.#onValue = onValue
    this.#bytesMax = bytesMax
    this.#frame = this.#parts()
    this.#wanted = this.#next()
  }

  push(piece: Uint8Array): void {
    let rest = piece
    while (rest.length > 0) {
      const taken = rest.subarray(0, this.#wanted.length - this.#filled)
      this.#wanted.set(taken, this.#filled)
      this.#filled += taken.length
      rest = rest.subarray(taken.length)
      while (this.#filled === this.#wanted.length) this.#wanted = this.#next(this.#wanted)
    }
  }

  #next(filled: Uint8Array = new Uint8Array()): Uint8Array {
    const step = this.#frame.next(filled)
    this.#filled = 0
    if (step.done !== true) return new Uint8Array(step.value)
    this.#frame = this.#parts()
    this.#onValue(step.value)
    return this.#next()
  }

  *#parts(): Generator<number, unknown, Uint8Array> {
    const [count = 0] = numbersOf(yield 4)
    if (count * 4 > this.#bytesMax) throw new Error("a frame has too many parts")
    const lengths = numbersOf(yield count * 4)
    if (lengths.reduce((sum, length) => sum + length, 0) > this.#bytesMax)
      throw new Error(`a frame is larger than ${this.#bytesMax} bytes`)
    const parts: Array<Uint8Array> = []
    for (const length of lengths) parts.push(yield length)
    const reader = new ValueReader(parts)
    reader.readHeader()
    return reader.readValue()
  }
}

const numbersOf = (bytes: Uint8Array): ReadonlyArray<number> => [...new Uint32Array(bytes.slice().buffer)]
