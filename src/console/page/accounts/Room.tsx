import type { Room } from "../view/Rooms.ts"

export const room: Room = {
  name: "accounts",
  tile: {
    order: 1,
    title: "Accounts",
    purpose: "users, keys, files",
    components: ["postgres", "rate-limits"]
  }
}
