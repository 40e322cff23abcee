import type { Room } from "../view/Rooms.ts"
import { useNavigation } from "../view/Navigation.tsx"
import { ProjectIndex } from "./ProjectIndex.tsx"
import { ProjectView } from "./ProjectView.tsx"
import { notifyView } from "./Words.ts"
import "./Notify.css"

/** Notifications: the user's projects, their keys and their messages, or one project. */
const Notify = () => {
  const { project } = useNavigation().view.params
  return (
    <div class="notify">
      {project === undefined ? <ProjectIndex /> : <ProjectView key={project} id={project} />}
    </div>
  )
}

export const room: Room = {
  name: "notify",
  tile: { order: 5, title: "Notifications", purpose: "messages to people", components: ["notify"] },
  page: {
    path: notifyView.room,
    title: "Notify",
    order: 4,
    params: ["project"],
    item: "project",
    Page: Notify,
    probe: { path: "/api/v1/projects" }
  }
}
