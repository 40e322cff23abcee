import { render } from "preact"
import { App } from "./App.tsx"
import { NavigationProvider } from "./view/Navigation.tsx"
import { type Room, roomsOf } from "./view/Rooms.ts"
import { takeTicket } from "./view/Ticket.ts"
// The last of the styles, behind those that the rooms import.
import "./style/Forced.css"

const ticket = takeTicket()
const root = document.getElementById("page")
if (root === null) throw new Error("index.html has no #page")

const rooms = roomsOf(import.meta.glob<Room>("./*/Room.tsx", { eager: true, import: "room" }))

render(
  <NavigationProvider rooms={rooms}>
    <App rooms={rooms} ticket={ticket} />
  </NavigationProvider>,
  root
)
