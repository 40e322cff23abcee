import type { Measurement } from "#bench/harness/Suite.ts"
import { clientOf, type StatsContext } from "./Measuring.ts"

interface Size {
  readonly name: string
  readonly bytes: number
}

const tables = `
SELECT database || '.' || table AS name, toFloat64(sum(bytes_on_disk)) AS bytes FROM system.parts
WHERE active AND (database = 'obvious' OR database = currentDatabase() AND table IN ('events', 'visits', 'long_visits', 'page_names'))
GROUP BY name`

const columns = `
SELECT table || '.' || column AS name, toFloat64(sum(column_data_compressed_bytes)) AS bytes FROM system.parts_columns
WHERE active AND database = currentDatabase() AND table IN ('events', 'visits', 'long_visits', 'page_names') GROUP BY name ORDER BY bytes DESC`

/** Bytes an event on disk, all of it (marks, primary keys and skip indexes too), and by column what is compressed. */
export const storage = async ({ given }: StatsContext): Promise<Measurement> => {
  const clickhouse = clientOf(given.merged)
  const startedAt = performance.now()
  try {
    const sizes = async (query: string): Promise<ReadonlyArray<Size>> =>
      (await clickhouse.query({ query, format: "JSONEachRow" })).json<Size>()
    const [ofTables, ofColumns] = [await sizes(tables), await sizes(columns)]
    const bytesOf = (name: string): number =>
      ofTables.filter((table) => table.name.endsWith(name)).reduce((sum, { bytes }) => sum + bytes, 0)
    const ofObvious = bytesOf("obvious.events")
    const ofEvents = bytesOf(".events") - ofObvious
    const ofVisits = bytesOf(".visits") + bytesOf(".long_visits") + bytesOf(".page_names")
    return {
      work: 1,
      elapsedMillis: performance.now() - startedAt,
      figures: {
        "B/event": (ofEvents + ofVisits) / given.events,
        "events B": ofEvents / given.events,
        "visits B": ofVisits / given.events,
        "obvious B": ofObvious / given.events,
        "filled events/s": (given.events * 1000) / given.fillMillis
      },
      details: Object.fromEntries(ofColumns.map(({ bytes, name }) => [name, bytes / given.events]))
    }
  } finally {
    await clickhouse.close()
  }
}
