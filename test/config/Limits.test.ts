import { assert, describe, it } from "@effect/vitest"
import { HttpApi } from "effect/http-api"
import { clickHouseMigrations, postgresMigrations } from "#src/Migrations.ts"
import { limits } from "#src/Limits.ts"
import { rooms } from "#src/Rooms.ts"

/** The relations of the numbers: `[smaller, larger, why]`. */
const below: ReadonlyArray<readonly [smaller: number, larger: number, why: string]> = [
  [limits.clickhouseInsertMillis, limits.batchWriteMillis, "an insert fails before the batch that it is of"],
  [limits.clickhouseQueryMillis, limits.batchWriteMillis, "as do its queries"],
  [limits.clickhousePingMillis, limits.readinessCheckMillis, "a ping fails before the check that asks it"],
  [
    3 * limits.idempotencyBeatMillis,
    limits.idempotencyDeadMillis,
    "three words are missed before a process is dead"
  ],
  [
    limits.idempotencyDeadMillis + limits.idempotencyBeatMillis,
    60_000,
    "a key of a dead process is free within a minute"
  ],
  [3 * limits.ledgerHeartbeatMillis, limits.ledgerSweepMillis, "as of the ledger"],
  [3 * limits.countingRenewMillis, limits.countingLeaseMillis, "as of the lease on counting"],
  [3 * limits.countingAloneRenewMillis, limits.countingAloneLeaseMillis, "as of a process alone"],
  [
    2 * limits.countingLeaseMillis + 2 * limits.countingPollMillis,
    10_000,
    "another process counts within 10 s of the holder's death"
  ],
  [limits.cachePollMillis + limits.keyWatchMillis, 1_000, "a revoked key stops within a second"],
  [limits.sessionIdleMillis, limits.sessionMillis, "a session that is used outlasts one that is not"],
  [limits.sessionTouchMillis, limits.sessionIdleMillis, "a use is written before the session is idle"],
  [limits.sessionTouchRetryMillis, limits.sessionTouchMillis, "and tried again"],
  [limits.cachePollTimeoutMillis, limits.cacheStaleMillis, "a poll that hangs is noticed in time"],
  [limits.usageWaitMillis, limits.callsEndMillis, "calls that were left are settled before the end"],
  [limits.callsEndMillis, limits.drainMillis, "and the end waits for them"],
  [limits.drainNoticeMillis, limits.drainMillis, "the notice is part of the drain"],
  [3 * limits.processBeatMillis, limits.processDeadMillis, "as of a process"],
  [
    limits.processDeadMillis,
    limits.processForgetMillis,
    "a dead process is known as dead before it is forgotten"
  ],
  [limits.workerLeaveMillis, limits.bodyReadMillis, "a job that was left ends before its deadline"],
  [limits.noticePayloadBytes, 8_000, "Postgres takes a payload of NOTIFY"],
  [limits.ledgerGrantMillis, limits.ledgerWaitMillis, "a call outlasts one grant that fails"],
  [limits.ledgerRetryMillis, limits.ledgerIdleMillis, "a return is repeated before its lease is idle again"],
  [
    limits.firstTokenMillis - 1,
    limits.lastFirstTokenMillis,
    "the last member has at least as long as the others"
  ],
  [limits.callsPerUser, limits.callsInFlight, "one user cannot take all calls"],
  [limits.callsPerKey - 1, limits.callsPerUser, "nor one key more than its user"],
  [limits.logCommitBytes, limits.logSegmentBytes, "a commit fits into a segment"],
  [2 * limits.logSegmentBytes, limits.logBytes, "a log that is cut has a segment left"],
  [2 * limits.callLogSegmentBytes, limits.callLogBytes, "as the log of calls"],
  [2 * limits.logSegmentBytes, limits.importLogBytes, "as the log of imports"],
  [limits.importTurnRows, limits.importBatchRows, "a batch of imports has several turns"],
  [limits.completionBodyBytes, limits.callBodiesBytes, "one body leaves room for others"],
  [limits.collectBodyBytes, limits.clickhouseBodyBytes, "a body of events fits into a statement"],
  [
    limits.clickhouseQueryBytes,
    limits.clickhouseServerBytes,
    "one query leaves room for the rest of ClickHouse"
  ],
  [limits.egressNameMillis, limits.egressTotalMillis, "a slow name leaves time for an answer"],
  [2 * limits.egressAttemptMillis, limits.egressConnectMillis, "several addresses have their turn"],
  [limits.egressConnectionsPerOrigin, limits.egressUnderWay, "one origin leaves room for others"],
  [
    25,
    1 + 1_000 / limits.telegramPaceMillis,
    "Telegram takes 30 messages a second, of which the bot uses 25"
  ],
  [limits.telegramGroupPerMinute, 20, "and takes 20 a minute in a group"],
  [limits.telegramTurnMillis, limits.deliveryAttemptMillis, "an attempt outlasts its wait for a turn"],
  [
    limits.telegramPollMillis + limits.telegramAnswerMillis,
    limits.telegramSilentMillis,
    "a poll that nothing came to is no silence"
  ],
  [limits.retryMinMillis, limits.retryMaxMillis, "pauses grow"],
  [limits.storeRestartMinMillis, limits.storeRestartMaxMillis, "pauses grow"],
  [limits.breakerMinMillis, limits.breakerMaxMillis, "pauses grow"],
  [limits.catalogueRetryMinMillis, limits.catalogueRetryMaxMillis, "pauses grow"],
  [limits.connectionsMin, limits.connections, "the least is below the most"],
  [
    limits.mailBytes - 1,
    limits.mailMessagesBytes / 2,
    "the largest mail fits into the half that an owner alone has"
  ],
  [
    limits.jobLeaseMillis + limits.jobPollMillis,
    60_000,
    "jobs of a process that died are taken over within a minute"
  ],
  [limits.mailRowBytes, limits.mailHashInPlaceBytes, "a mail in a row is hashed where it is"],
  [limits.mailHashMillis, limits.mailAttemptMillis, "a hash leaves time for its attempt"],
  [2 * limits.changesPerUser, limits.postgresConnections, "changes of two users leave connections for others"]
]

const repeated = (names: ReadonlyArray<string | number>): ReadonlyArray<string | number> =>
  names.filter((name, index) => names.indexOf(name) !== index)

describe("limits", () => {
  it.each(below)("%d < %d: %s", (smaller, larger) => {
    assert.isBelow(smaller, larger)
  })
})

describe("identifiers of rooms", () => {
  it("are each one's own: rooms, groups and operations of the API, migrations of each store", () => {
    const groups: Array<string> = []
    const operations: Array<string> = []
    for (const api of rooms.flatMap((room) => [room.api, room.rawApi])) {
      if (!HttpApi.isHttpApi(api)) continue
      HttpApi.reflect(api, {
        onGroup: ({ group }) => groups.push(group.identifier),
        onEndpoint: ({ endpoint }) => operations.push(endpoint.identifier)
      })
    }
    assert.isAbove(groups.length, rooms.length)
    for (const names of [
      rooms.map(({ name }) => name),
      groups,
      operations,
      postgresMigrations.map(({ id }) => id),
      clickHouseMigrations.map(({ id }) => id)
    ]) {
      assert.deepStrictEqual(repeated(names), [])
    }
  })

  it("number migrations without a gap", () => {
    for (const migrations of [postgresMigrations, clickHouseMigrations])
      assert.deepStrictEqual(
        migrations.map(({ id }) => id),
        migrations.map((_, index) => index + 1)
      )
  })
})
