import { Command } from "effect/cli"
import type { Room } from "../Room.ts"

const description = `Manage a Signalbox server

Exit codes: 0 done; 1 refused by the server, or a check that found something; 2 called wrongly; 69 no answer from the server; 77 the key is refused; 78 no server is known. With --json faults are one line of JSON on stderr.`

/** `signalbox`: the HTTP API from a terminal. */
export const signalboxOf = (commands: ReadonlyArray<Command.Command.Any>) =>
  Command.make("signalbox").pipe(Command.withDescription(description), Command.withSubcommands(commands))

/** The commands of all rooms, whichever of them a server runs. */
export const commandsOf = async (
  rooms: ReadonlyArray<Pick<Room, "commands">>
): Promise<ReadonlyArray<Command.Command.Any>> =>
  (await Promise.all(rooms.map(({ commands }) => commands()))).flat()
