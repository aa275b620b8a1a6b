import * as Layer from "effect/Layer"
import * as AbiStore from "../../src/adapters/memory/AbiStore.js"
import { suite } from "./AbiStore.suite.js"

suite("memory", Layer.fresh(AbiStore.layer))
