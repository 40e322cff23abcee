import type { Room } from "../view/Rooms.ts"

export const room: Room = {
  name: "notify",
  tile: {
    order: 5,
    title: "Notifications",
    purpose: "messages to people",
    components: ["notify"]
  }
}
