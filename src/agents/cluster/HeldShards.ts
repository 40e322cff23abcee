import { EntityId, ShardId, type Sharding } from "effect/cluster"

const group = "default"

/** The part of effect/cluster that is needed. */
type Shards = Pick<Sharding.Sharding["Service"], "getShardId" | "hasShardId">

/** The shards whose locks this process has, and thereby the sessions of which it is the home. */
export class HeldShards {
  /** since when a shard that this process had is away, by the clock of `look`; undefined: it is held */
  private readonly had = new Map<string, number | undefined>()
  private readonly doors = new Map<string, string>()
  private readonly sharding: Shards
  private readonly graceMillis: number
  private readonly all: ReadonlyArray<ShardId.ShardId>

  constructor(sharding: Shards, shards: number, graceMillis: number) {
    this.sharding = sharding
    this.graceMillis = graceMillis
    this.all = Array.from({ length: shards }, (_, index) => ShardId.make(group, index + 1))
    // An entity's shard follows from its id, so ids are tried until every shard has one; all machines find the same.
    for (let tried = 0; this.doors.size < shards; tried++) {
      const shard = String(this.shardOf(`door ${tried}`))
      if (!this.doors.has(shard)) this.doors.set(shard, `door ${tried}`)
    }
  }

  isHere(sessionId: string): boolean {
    return this.sharding.hasShardId(this.shardOf(sessionId))
  }

  get count(): number {
    return this.all.filter((shard) => this.sharding.hasShardId(shard)).length
  }

  /**
   * Looks again; answers a test for sessions that have another home by now, or undefined if there are none. A shard is
   * given up when it stays away: locks end with their connection to Postgres, and are taken again. A process that holds
   * no shard at all has lost Postgres (or leaves), and so have the others: its sessions stay until it holds shards
   * again and knows which. Until then a session's epoch keeps the writes of two processes apart.
   * @param millis of a monotonic clock
   */
  look(millis: number): ((sessionId: string) => boolean) | undefined {
    const now = this.all.filter((shard) => this.sharding.hasShardId(shard))
    if (now.length === 0) return undefined
    for (const shard of this.had.keys()) this.had.set(shard, this.had.get(shard) ?? millis)
    for (const shard of now) this.had.set(String(shard), undefined)
    const gone = new Set<string>()
    for (const [shard, since] of this.had)
      if (since !== undefined && millis - since >= this.graceMillis) gone.add(shard)
    for (const shard of gone) this.had.delete(shard)
    return gone.size === 0 ? undefined : (sessionId) => gone.has(String(this.shardOf(sessionId)))
  }

  /** The id of the entity of the session's shard. */
  doorOf(sessionId: string): string {
    return this.doors.get(String(this.shardOf(sessionId))) ?? sessionId
  }

  private shardOf(sessionId: string): ShardId.ShardId {
    return this.sharding.getShardId(EntityId.make(sessionId), group)
  }
}
