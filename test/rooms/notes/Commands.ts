import { Console } from "effect"
import { Command } from "effect/cli"

export const commands = [
  Command.make("notes", {}, () => Console.log("one note")).pipe(Command.withDescription("List notes"))
] as const
