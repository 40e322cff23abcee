import { Result } from "effect"
import type { BlobSource } from "./BlobFiles.ts"

/** A source that can be ended from outside, also while its next bytes are waited for. */
export class StoppableSource<E, S> {
  private readonly source: BlobSource<E>
  private stopped: Result.Result<never, S> | undefined
  private waiting: ((ended: Result.Result<never, S>) => void) | undefined

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
    return new Promise((resolve, reject) => {
      this.waiting = resolve
      this.source().then(resolve, reject)
    })
  }
}
