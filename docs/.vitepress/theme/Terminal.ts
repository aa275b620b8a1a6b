import { h } from "vue"

/** A request of `castellan dev` and its decoded answer, next to the title of the home page. */
const part = (kind: string, text: string) => h("span", { class: kind }, text)

const line = (kind: "ok" | "no" | "dim", sign: string, said: string, detail: string) =>
  h("li", [
    h("span", { class: kind, "aria-hidden": "true" }, sign),
    h("span", [part(kind === "dim" ? "" : kind, said), h("small", detail)])
  ])

export const terminal = () =>
  h("figure", { class: "terminal" }, [
    h("figcaption", [h("span", "POST /execute"), h("span", "answered by castellan dev")]),
    h("pre", { tabindex: "0", "aria-label": "The request" }, [
      h("code", [
        part("key", "const"),
        " pay = (salt, to, amount) => ({\n  salt, walletCustody: 1, to: token,\n  funcSignature: ",
        part("text", '"transfer(address,uint256)"'),
        ",\n  funcParams: [to, amount] })\n\n",
        part("key", "await"),
        " castellan.execute({ settings, operations: [\n  pay(",
        part("text", '"treasury"'),
        ", ",
        part("text", '"0x3C44…93BC"'),
        ", ",
        part("text", '"250000000"'),
        "),\n  pay(",
        part("text", '"payroll"'),
        ", ",
        part("text", '"0x90F7…b906"'),
        ", ",
        part("text", '"40000000"'),
        ") ] })"
      ])
    ]),
    h("ol", { "aria-label": "The answer, decoded" }, [
      line(
        "ok",
        "✓",
        "operation 0 succeeded",
        "Transfer(from: 0x2236…44b6, to: 0x3C44…93BC, value: 250000000)"
      ),
      line(
        "no",
        "✗",
        "operation 1 was not sent, and cost nothing",
        "ERC20InsufficientBalance(sender: 0x0ba1…fBcF, balance: 0, needed: 40000000)"
      ),
      line(
        "dim",
        "→",
        "status 4 after 63 ms, transaction 0xd71a…bfa7",
        "the wallet paid 0.000109264 ETH back to the EOA that submitted"
      )
    ])
  ])
