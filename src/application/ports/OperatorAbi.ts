import * as Context from "effect/Context"
import * as UseAbi from "../../domain/abi/UseAbi.js"

/** Definitions of the operator, for all accounts alike: they count as registered. None unless something else is provided. */
export class OperatorAbi extends Context.Reference<OperatorAbi>()("castellan/OperatorAbi", {
  defaultValue: (): UseAbi.UseAbi => UseAbi.empty
}) {}
