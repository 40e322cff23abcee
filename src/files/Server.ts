import { Layer } from "effect"
import type { RoomServer } from "#src/Room.ts"

export const server: RoomServer = {
  served: Layer.empty,
  raw: Layer.empty,
  paths: []
}
