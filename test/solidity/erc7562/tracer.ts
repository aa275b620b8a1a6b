/**
 * A JavaScript tracer of debug_traceCall: notes the instructions that ERC-7562 has rules for, with their operands, and
 * the calls. Without it a trace of a P-256 verification in Solidity is 60 MB of stacks.
 */
export const tracer = `{
  events: [],
  // The step whose following instruction is not known yet.
  open: null,
  // How many operands of these instructions are noted.
  operands: {
    SLOAD: 1, SSTORE: 1, TLOAD: 1, TSTORE: 1, BALANCE: 1, SELFBALANCE: 0, GAS: 0,
    EXTCODESIZE: 1, EXTCODEHASH: 1, EXTCODECOPY: 1, CREATE: 0, CREATE2: 0,
    CALL: 3, CALLCODE: 3, DELEGATECALL: 2, STATICCALL: 2,
    ORIGIN: 0, GASPRICE: 0, BLOCKHASH: 0, COINBASE: 0, TIMESTAMP: 0, NUMBER: 0, DIFFICULTY: 0, PREVRANDAO: 0,
    GASLIMIT: 0, BASEFEE: 0, INVALID: 0, SELFDESTRUCT: 0
  },
  note: function (log, op, count, preimage) {
    var args = []
    for (var i = 0; i < count; i++) args.push("0x" + log.stack.peek(i).toString(16))
    var event = {
      kind: "step", op: op, address: toHex(log.contract.getAddress()), args: args, next: null, preimage: preimage
    }
    this.events.push(event)
    return event
  },
  step: function (log) {
    var op = log.op.toString()
    if (this.open !== null) {
      this.open.next = op
      this.open = null
    }
    if (op === "KECCAK256") {
      if (log.stack.peek(1).toString() !== "64") return
      var from = Number(log.stack.peek(0).toString())
      this.note(log, op, 0, toHex(log.memory.slice(from, from + 64)))
      return
    }
    var count = this.operands[op]
    if (count === undefined && !/not defined|^opcode|UNKNOWN/.test(op)) return
    var event = this.note(log, op, count || 0, null)
    if (op === "GAS" || op === "EXTCODESIZE") this.open = event
  },
  fault: function () {},
  enter: function (frame) {
    var input = toHex(frame.getInput())
    this.events.push({
      kind: "enter", type: frame.getType(), from: toHex(frame.getFrom()), to: toHex(frame.getTo()),
      input: input.slice(0, 74), size: input.length / 2 - 1
    })
  },
  exit: function (result) {
    var error = result.getError()
    this.events.push({ kind: "exit", error: error === undefined ? null : String(error) })
  },
  result: function () {
    return this.events
  }
}`
