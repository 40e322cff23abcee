import { agentLimits } from "#schemas/agents/AgentLimits.ts"

/** A character of JavaScript's strings takes at most so many bytes as UTF-8; a pair of surrogates takes 4. */
const bytesPerCharacterMax = 3
const pieceCharacters = Math.floor(agentLimits.streamChunkBytes / bytesPerCharacterMax)

/** Cuts output into what `tool.stream` may carry, between whole characters. */
export const streamPieces = (text: string): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  let from = 0
  while (from < text.length) {
    let to = Math.min(from + pieceCharacters, text.length)
    const last = text.charCodeAt(to - 1)
    if (to < text.length && last >= 0xd8_00 && last <= 0xdb_ff) to -= 1
    pieces.push(text.slice(from, to))
    from = to
  }
  return pieces
}
