import { useEffect, useState } from "preact/hooks"
import type { Readiness, RoomComponent } from "../api/Contract.ts"
import { whenVisible } from "../api/WhenVisible.ts"

/** The rooms, and which parts of the server each of them stands on, as `/readyz` names them. */
const rooms = [
  { name: "Accounts", purpose: "users, keys, files", components: ["postgres", "rate-limits"] },
  { name: "Analytics", purpose: "events and figures", components: ["log", "clickhouse"] }
] as const

const refreshMillis = 15_000

/** Which rooms are up. Needs no key. */
export const Rooms = () => {
  const readiness = useReadiness()
  return (
    <section class="rooms" aria-labelledby="rooms-title">
      <h2 id="rooms-title">Rooms</h2>
      {readiness === undefined && <p class="hint">Asking the server …</p>}
      {readiness === "silent" && <p role="status">The server does not answer. Trying again.</p>}
      {typeof readiness === "object" && (
        <>
          {readiness.status === "draining" && <p role="status">The server is stopping.</p>}
          <ul>
            {rooms.map((room) => (
              <Room
                key={room.name}
                name={room.name}
                purpose={room.purpose}
                {...stateOf(room.components, readiness)}
              />
            ))}
          </ul>
        </>
      )}
    </section>
  )
}

interface RoomState {
  readonly status: RoomComponent["status"] | "off"
  readonly details: ReadonlyArray<string>
}

const words = { up: "up", degraded: "degraded", down: "down", off: "not running here" } as const

const Room = ({
  details,
  name,
  purpose,
  status
}: RoomState & { readonly name: string; readonly purpose: string }) => (
  <li>
    <span class={`light ${status}`} aria-hidden="true" />
    <span class="room-name">
      {name} <span class="hint">{purpose}</span>
    </span>
    <span class="room-status">{words[status]}</span>
    {details.map((detail) => (
      <span class="room-detail hint" key={detail}>
        {detail}
      </span>
    ))}
  </li>
)

const severity = ["up", "degraded", "down"] as const

/** A room is as well as the worst part that it stands on; without any of them it is not among `ROOMS`. */
const stateOf = (names: ReadonlyArray<string>, { components }: Readiness): RoomState => {
  const parts = names.flatMap((name) => {
    const component = components[name]
    return component === undefined ? [] : [{ name, ...component }]
  })
  if (parts.length === 0) return { status: "off", details: [] }
  const worst = Math.max(...parts.map(({ status }) => severity.indexOf(status)))
  return {
    status: severity[worst] ?? "down",
    details: parts
      .filter(({ status }) => status !== "up")
      .map(({ detail, name, status }) => `${name}: ${detail ?? status}`)
  }
}

const useReadiness = (): Readiness | "silent" | undefined => {
  const [readiness, setReadiness] = useState<Readiness | "silent">()
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const load = async (): Promise<void> => {
      const report = await readReadiness(signal)
      if (signal.aborted) return
      setReadiness(report)
      whenVisible(refreshMillis, load, signal)
    }
    void load()
    return () => controller.abort()
  }, [])
  return readiness
}

/** A server that is not ready says so with 503 and the same body. */
const readReadiness = async (signal: AbortSignal): Promise<Readiness | "silent"> => {
  try {
    const response = await fetch("/readyz", { signal, cache: "no-store", credentials: "omit" })
    return (await response.json()) as Readiness
  } catch {
    // No connection, or a proxy's page in the server's place: the reader is told, and it is tried again.
    return "silent"
  }
}
