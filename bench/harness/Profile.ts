import { readFileSync } from "node:fs"
import { basename } from "node:path"

/** A CPU profile as V8 writes it (`.cpuprofile`). */
interface CpuProfile {
  readonly nodes: ReadonlyArray<{
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  }>
  readonly samples: ReadonlyArray<number>
  /** microseconds between samples */
  readonly timeDeltas: ReadonlyArray<number>
}

const shown = 20

/** The end of a path, enough to find the file. */
const place = (url: string, line: number): string => {
  if (url === "") return "native"
  const path = url.replace(/^file:\/\//, "").split("/")
  return `${path.length > 3 ? path.slice(-3).join("/") : basename(url)}:${line + 1}`
}

/** The functions that a profile saw most often, by the time spent in themselves. */
export const heaviest = (file: string): ReadonlyArray<string> => {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, "utf8")) as CpuProfile
  const names = new Map(
    nodes.map(({ callFrame: { functionName, lineNumber, url }, id }) => [
      id,
      `${functionName === "" ? "(anonymous)" : functionName}  ${place(url, lineNumber)}`
    ])
  )
  const micros = new Map<string, number>()
  for (const [index, id] of samples.entries()) {
    const name = names.get(id) ?? "(unknown)"
    micros.set(name, (micros.get(name) ?? 0) + (timeDeltas[index] ?? 0))
  }
  const idle = Array.from(micros).filter(([name]) => name.startsWith("(idle)"))
  for (const [name] of idle) micros.delete(name)
  const all = Array.from(micros.values()).reduce((sum, one) => sum + one, 0)
  return Array.from(micros)
    .toSorted((a, b) => b[1] - a[1])
    .slice(0, shown)
    .map(([name, own]) => `${((own / all) * 100).toFixed(1).padStart(5)} %  ${name}`)
}
