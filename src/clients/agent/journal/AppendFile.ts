import { open, type FileHandle } from "node:fs/promises"

interface Waiting {
  readonly line: string
  readonly durable: boolean
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

/**
 * Appends lines in order. Lines appended during a write go out with the next one, and one fdatasync serves all of it.
 * After a failure nothing more is written: a line behind a torn one could not be told from damage.
 */
export class AppendFile {
  private readonly path: string
  private handle: FileHandle | undefined
  private waiting: Array<Waiting> = []
  private writing: Promise<void> | undefined
  private broken: unknown

  constructor(path: string) {
    this.path = path
  }

  /** Done when the line is written; where `durable`, when it would survive a loss of power. */
  append(line: string, durable: boolean): Promise<void> {
    if (this.broken !== undefined) return Promise.reject(this.broken)
    return new Promise((done, failed) => {
      this.waiting.push({ line, durable, done, failed })
      this.writing ??= this.writeAll()
    })
  }

  /** Every later append fails. */
  async close(): Promise<void> {
    await this.writing
    this.broken ??= new Error("The journal is closed")
    const { handle } = this
    this.handle = undefined
    await handle?.close()
  }

  private async writeAll(): Promise<void> {
    while (this.waiting.length > 0) {
      const batch = this.waiting
      this.waiting = []
      try {
        // Opened by the first write, so that a batch of entries made in one turn goes out as one.
        this.handle ??= await open(this.path, "a", 0o600)
        await this.handle.writeFile(batch.map(({ line }) => line).join(""))
        if (batch.some(({ durable }) => durable)) await this.handle.datasync()
        for (const { done } of batch) done()
      } catch (error) {
        this.broken = error
        for (const { failed } of [...batch, ...this.waiting]) failed(error)
        this.waiting = []
      }
    }
    this.writing = undefined
  }
}
