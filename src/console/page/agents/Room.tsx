import { useNavigation } from "../view/Navigation.tsx"
import type { Room } from "../view/Rooms.ts"
import { SessionList } from "./SessionList.tsx"
import { SessionView } from "./SessionView.tsx"
import { agentsView } from "./Words.ts"
import "./Agents.css"

/** Agents: the user's sessions with them, and the transcript of one of them. */
const Agents = () => {
  const { session } = useNavigation().view.params
  return (
    <div class="agents">
      {session === undefined ? <SessionList /> : <SessionView key={session} id={session} />}
    </div>
  )
}

export const room: Room = {
  name: "agents",
  tile: { order: 3, title: "Agents", purpose: "sessions of coding agents", components: ["agents"] },
  page: {
    path: agentsView.room,
    title: "Agents",
    order: 3,
    params: ["session"],
    item: "session",
    Page: Agents
  }
}
