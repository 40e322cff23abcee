import * as fs from "node:fs/promises"
import { Effect, Predicate, Schema } from "effect"

/** No room on the disk (ENOSPC, EDQUOT), or less than is kept free. */
export class DiskFull extends Schema.TaggedError<DiskFull>()("DiskFull", { cause: Schema.Defect() }) {}

/** The names of files that were made, renamed or changed after one instant and before the other. */
export const within = async (
  names: ReadonlyArray<string>,
  pathOf: (name: string) => string,
  sinceMillis: number,
  untilMillis: number
): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  for (const name of names) {
    const stats = await ifThere(fs.stat(pathOf(name)))
    if (stats !== undefined && stats.ctimeMs > sinceMillis && stats.ctimeMs < untilMillis) found.push(name)
  }
  return found
}

/** A second name of a file, or a synced copy where its file system is another one, or knows no second names. */
export const linkOrCopy = async (from: string, to: string): Promise<void> => {
  try {
    await fs.link(from, to)
  } catch (error) {
    if (!["EXDEV", "EPERM", "ENOTSUP", "EOPNOTSUPP", "EMLINK"].includes(codeOf(error) ?? "")) throw error
    await fs.copyFile(from, to, fs.constants.COPYFILE_EXCL)
    const file = await fs.open(to, "r+")
    await file.sync().finally(() => file.close())
  }
}

export const syncDirectory = async (path: string): Promise<void> => {
  const handle = await fs.open(path, "r")
  await handle.sync().finally(() => handle.close())
}

export const codeOf = (error: unknown): string | undefined =>
  Predicate.hasProperty(error, "code") && Predicate.isString(error.code) ? error.code : undefined

export const ifThere = <A>(found: Promise<A>): Promise<A | undefined> =>
  found.catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  })

export const disk = <A>(run: () => Promise<A>): Effect.Effect<A, DiskFull> =>
  Effect.tryPromise({ try: run, catch: (cause) => cause }).pipe(
    Effect.catch((cause) =>
      ["ENOSPC", "EDQUOT"].includes(codeOf(cause) ?? "")
        ? Effect.fail(new DiskFull({ cause }))
        : Effect.die(cause)
    )
  )
