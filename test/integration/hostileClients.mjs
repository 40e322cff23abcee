// Connections that never finish anything, from a process of their own: node hostileClients.mjs <port> <connections>.
// Prints, a line each: "made <count>" once all are made, and "left <count>" every second from then on; a client that
// does not read does not notice that it was dropped, and is not counted.
import { connect } from "node:net"

const [port, wanted] = process.argv.slice(2).map(Number)

/** Made so many at a time, as the kernel's queue of new connections is short. */
const atOnce = 200

/** The bytes that each kind sends at once, and then again every second. */
const silent = { first: "", rest: "" }
const slowHeader = { first: "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ", rest: "a" }
const slowBody = { first: "POST /api/event HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n{", rest: " " }
const stalledReader = { first: "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(20), rest: "" }

const kindOf = (index) => (index % 40 === 0 ? stalledReader : [silent, slowHeader, slowBody][index % 3])

let begun = 0
let made = 0
let left = 0

const begin = () => {
  const kind = kindOf(begun++)
  const socket = connect(port, "127.0.0.1")
  let timer
  socket.once("connect", () => {
    made++
    if (kind !== stalledReader) left++
    if (kind.first !== "") socket.write(kind.first)
    if (kind === stalledReader) socket.pause()
    else socket.resume()
    if (kind.rest !== "") timer = setInterval(() => socket.write(kind.rest), 1_000)
    if (begun < wanted) begin()
    if (made === wanted) {
      process.stdout.write(`made ${made}\n`)
      setInterval(() => process.stdout.write(`left ${left}\n`), 1_000)
    }
  })
  // The server ends these connections; how is its own affair.
  socket.on("error", () => socket.destroy())
  socket.once("close", () => {
    clearInterval(timer)
    if (kind !== stalledReader) left--
  })
}

for (let index = 0; index < atOnce; index++) begin()
