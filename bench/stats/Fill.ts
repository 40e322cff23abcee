import { parseArgs } from "node:util"
import { fillPair } from "./FilledPair.ts"
import { type FillOptions, mergeParts, openFilled } from "./FilledServer.ts"

/**
 * Fills a data directory on which a server can then be started, or fills up one that was:
 * `node bench/stats/Fill.ts --data DIR [--events 10000000] [--days 60] [--until 2026-11-21T08:00:00Z] [--unmerged]`.
 * With `--apart DIR` it makes two new directories with the same events: that one's last day is in parts.
 */
const { values } = parseArgs({
  options: {
    data: { type: "string" },
    apart: { type: "string" },
    events: { type: "string", default: "10000000" },
    days: { type: "string", default: "60" },
    paths: { type: "string", default: "50000" },
    until: { type: "string" },
    unmerged: { type: "boolean", default: false }
  }
})

if (values.data === undefined) throw new Error("--data DIR: the directory to fill")
const options: FillOptions = {
  directory: values.data,
  events: Number(values.events),
  days: Number(values.days),
  paths: Number(values.paths),
  untilMillis: values.until === undefined ? Date.now() : Date.parse(values.until)
}

const fillOne = async (): Promise<void> => {
  const filled = await openFilled(options)
  try {
    const startedAt = performance.now()
    const written = await filled.fillUntil(options.untilMillis)
    const seconds = (performance.now() - startedAt) / 1000
    console.log(`${written} events in ${seconds.toFixed(1)} s, ${Math.round(written / seconds)}/s`)
    if (!values.unmerged) {
      await mergeParts(filled.clickhouse)
      console.log(`merged after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
    }
    console.log(
      `site ${filled.site}, key ${filled.server.adminKey()}, ${filled.filled().events} events in all`
    )
  } finally {
    await filled.close()
  }
}

await (values.apart === undefined ? fillOne() : fillPair(options, values.apart))
