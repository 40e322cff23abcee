/** A mirrored row: an id, and the columns of its indexes. */
export interface MirrorRow {
  readonly id: string
}

/** Finds a row by something else than its id; undefined: not to be found by this index. Keys are unique. */
export type IndexKey<Row> = (row: Row) => string | undefined

/** The in-memory side of a mirror: rows by id and by further keys. Knows nothing of Postgres. */
export class MirrorTable<Row extends MirrorRow, Index extends string> {
  private readonly rows = new Map<string, Row>()
  private readonly indexes = new Map<
    Index,
    { readonly key: IndexKey<Row>; readonly ids: Map<string, string> }
  >()
  private readonly isGone: (row: Row) => boolean
  private readonly maximumRows: number

  constructor(options: {
    readonly indexes: Readonly<Record<Index, IndexKey<Row>>>
    readonly isGone: (row: Row) => boolean
    readonly maximumRows: number
  }) {
    for (const name in options.indexes) this.indexes.set(name, { key: options.indexes[name], ids: new Map() })
    this.isGone = options.isGone
    this.maximumRows = options.maximumRows
  }

  get size(): number {
    return this.rows.size
  }

  get(id: string): Row | undefined {
    return this.rows.get(id)
  }

  by(index: Index, key: string): Row | undefined {
    const id = this.indexes.get(index)?.ids.get(key)
    return id === undefined ? undefined : this.rows.get(id)
  }

  all(): IterableIterator<Row> {
    return this.rows.values()
  }

  /** false: the table is full, and the row is not in it */
  put(row: Row): boolean {
    const before = this.rows.get(row.id)
    if (before !== undefined) this.unindex(before)
    if (this.isGone(row)) {
      this.rows.delete(row.id)
      return true
    }
    if (before === undefined && this.rows.size >= this.maximumRows) return false
    this.rows.set(row.id, row)
    for (const { ids, key } of this.indexes.values()) {
      const value = key(row)
      if (value !== undefined) ids.set(value, row.id)
    }
    return true
  }

  clear(): void {
    this.rows.clear()
    for (const { ids } of this.indexes.values()) ids.clear()
  }

  private unindex(row: Row): void {
    for (const { ids, key } of this.indexes.values()) {
      const value = key(row)
      // Another row may hold the key by now.
      if (value !== undefined && ids.get(value) === row.id) ids.delete(value)
    }
  }
}
