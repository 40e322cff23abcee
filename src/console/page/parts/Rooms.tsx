import type { Readiness, RoomComponent } from "../api/Contract.ts"
import type { ReadinessState } from "./UseReadiness.ts"

/** The rooms, and which parts of the server each of them stands on, as `/readyz` names them. */
const rooms = [
  { name: "Accounts", purpose: "users, keys, files", components: ["postgres", "rate-limits"] },
  { name: "Models", purpose: "completions and credits", components: ["catalogue", "calls"] },
  { name: "Agents", purpose: "sessions of coding agents", components: ["agents"] },
  { name: "Analytics", purpose: "events and figures", components: ["analytics", "log", "clickhouse"] }
] as const

interface RoomsProps {
  readonly readiness: ReadinessState["now"]
}

/** The rooms that are up, and the problems of the others. */
export const Rooms = ({ readiness }: RoomsProps) => (
  <section class="rooms" aria-labelledby="rooms-title">
    <h2 id="rooms-title">Rooms</h2>
    {readiness === undefined && <p class="hint">Asking the server …</p>}
    {readiness === "silent" && <p role="status">The server does not answer. Trying again.</p>}
    {typeof readiness === "object" && (
      <>
        {readiness.status === "draining" && <p role="status">The server is stopping.</p>}
        <ul>
          {rooms.map((room) => (
            <Room key={room.name} {...room} {...stateOf(room.components, readiness)} />
          ))}
        </ul>
      </>
    )}
  </section>
)

/** The rooms in a word. */
export const RoomsLight = ({ readiness }: RoomsProps) => {
  const { status, text } = sumOf(readiness)
  return (
    <span class="rooms-light" role="status">
      <span class={`light ${status}`} aria-hidden="true" />
      <span class="long">{text}</span>
    </span>
  )
}

interface RoomState {
  readonly status: RoomComponent["status"] | "off"
  readonly details: ReadonlyArray<string>
}

const words = {
  up: "up",
  standby: "standing by",
  degraded: "degraded",
  down: "down",
  off: "not running here"
} as const

interface RoomProps extends RoomState {
  readonly name: string
  readonly purpose: string
}

const Room = ({ details, name, purpose, status }: RoomProps) => (
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

const severity = ["up", "standby", "degraded", "down"] as const

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

const sumOf = (readiness: RoomsProps["readiness"]): Pick<RoomState, "status"> & { readonly text: string } => {
  if (readiness === undefined) return { status: "off", text: "" }
  if (readiness === "silent") return { status: "down", text: "No answer" }
  const states = rooms.map((room) => ({ name: room.name, ...stateOf(room.components, readiness) }))
  const ailing =
    states.find(({ status }) => status === "down") ?? states.find(({ status }) => status === "degraded")
  return ailing === undefined
    ? { status: "up", text: "All rooms up" }
    : { status: ailing.status, text: `${ailing.name} ${words[ailing.status]}` }
}
