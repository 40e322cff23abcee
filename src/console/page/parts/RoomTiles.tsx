import type { Room, RoomTile } from "../view/Rooms.ts"
import type { Readiness, ReadinessState, RoomComponent } from "./UseReadiness.ts"

interface RoomsProps {
  readonly rooms: ReadonlyArray<Room>
  readonly readiness: ReadinessState["now"]
}

/** The rooms that are up, and the problems of the others. */
export const RoomTiles = ({ readiness, rooms }: RoomsProps) => (
  <section class="rooms" aria-labelledby="rooms-title">
    <h2 id="rooms-title">Rooms</h2>
    {readiness === undefined && <p class="hint">Asking the server …</p>}
    {readiness === "silent" && <p role="status">The server does not answer. Trying again.</p>}
    {typeof readiness === "object" && (
      <>
        {readiness.status === "draining" && <p role="status">The server is stopping.</p>}
        <ul>
          {rooms.map(({ name, tile }) => (
            <Tile key={name} {...tile} {...stateOf(tile, readiness)} />
          ))}
        </ul>
      </>
    )}
  </section>
)

/** The rooms in a word. */
export const RoomsLight = (props: RoomsProps) => {
  const { status, text } = sumOf(props)
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

const Tile = ({ details, purpose, status, title }: RoomState & Pick<RoomTile, "title" | "purpose">) => (
  <li>
    <span class={`light ${status}`} aria-hidden="true" />
    <span class="room-name">
      {title} <span class="hint">{purpose}</span>
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
const stateOf = (tile: RoomTile, { components }: Readiness): RoomState => {
  const parts = tile.components.flatMap((name) => {
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

const sumOf = ({ readiness, rooms }: RoomsProps): Pick<RoomState, "status"> & { readonly text: string } => {
  if (readiness === undefined) return { status: "off", text: "" }
  if (readiness === "silent") return { status: "down", text: "No answer" }
  const states = rooms.map(({ tile }) => ({ title: tile.title, ...stateOf(tile, readiness) }))
  const ailing =
    states.find(({ status }) => status === "down") ?? states.find(({ status }) => status === "degraded")
  return ailing === undefined
    ? { status: "up", text: "All rooms up" }
    : { status: ailing.status, text: `${ailing.title} ${words[ailing.status]}` }
}
