import { Result } from "effect"
import type { BlobSource } from "./BlobFiles.ts"

/** A source that can be ended from outside, also while its next bytes are waited for. */
export class StoppableSource<E, S> {
  private readonly source: BlobSource<E>
  private stopped: Result.Result<never, S> | undefined
  private waiting: ((ended: Result.Result<never, S>) => void) | undefined
  private waitingSince: number | undefined

  constructor(source: BlobSource<E>) {
    this.source = source
  }

  /** The first reason counts. */
  stop(reason: S): void {
    this.stopped ??= Result.fail(reason)
    this.waiting?.(this.stopped)
  }

  readonly next: BlobSource<E | S> = () => {
    const { stopped } = this
    if (stopped !== undefined) return Promise.resolve(stopped)
    this.waitingSince = performance.now()
    return new Promise<Result.Result<Uint8Array | undefined, E | S>>((resolve, reject) => {
      this.waiting = resolve
      this.source().then(resolve, reject)
    }).finally(() => {
      this.waitingSince = undefined
    })
  }

  /** For so long nothing has come that was asked for. */
  get quietMillis(): number {
    return this.waitingSince === undefined ? 0 : performance.now() - this.waitingSince
  }
}
