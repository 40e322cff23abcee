import { Effect } from "effect"
import { existsSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"

/** By this name every log under `DATA_DIR/<room>/log` and `…/imports` knows the consumer that carries it into ClickHouse. */
export const clickHouseConsumer = "clickhouse"

/** The checkpoints of the logs' consumers of ClickHouse. */
const checkpointsIn = (dataDirectory: string): ReadonlyArray<string> =>
  readdirSync(dataDirectory)
    .flatMap((room) => ["log", "imports"].map((log) => join(dataDirectory, room, log)))
    .map((log) => join(log, `${clickHouseConsumer}.checkpoint`))
    .filter((file) => existsSync(file))

/**
 * An engine that is gone though the logs say that it was filled: deleted, on a disk that is not mounted, or left out of
 * a copy. The logs forget its progress, so that the new one gets all records they still hold; removed ones are lost,
 * which is reported. Answers the report, until the next start; undefined where nothing is missing.
 */
export const forgetLostEngine = (
  dataDirectory: string,
  engineDirectory: string
): Effect.Effect<string | undefined> =>
  Effect.suspend(() => {
    if (existsSync(engineDirectory)) return Effect.succeed(undefined)
    const checkpoints = checkpointsIn(dataDirectory)
    if (checkpoints.length === 0) return Effect.succeed(undefined)
    for (const file of checkpoints) rmSync(file)
    const text =
      `${engineDirectory} was missing at the start: what the logs still hold is brought in again, ` +
      "statistics and usage of before are gone unless it is restored from a copy"
    return Effect.as(Effect.logError(text), text)
  })
