/** Looks into the graph of a workflow. */
import type { AnyStep, Graph, Node, NodeStep } from "./definition.js"

/** The steps of a node. */
export const stepsOf = <R>(node: Node<R>): ReadonlyArray<NodeStep<R>> => {
  switch (node._tag) {
    case "Parallel":
      return node.steps
    case "Branch":
      return node.arms.map(({ step }) => step)
    default:
      return [node.step]
  }
}

/** The step of this id, with the ids of the workflows around it; places of a `foreach` are left out. */
export const findStep = (graph: Graph<unknown>, stepId: string): AnyStep | undefined => {
  const [first = "", ...rest] = stepId.split(".")
  const node = graph.nodes.find(known => stepsOf(known).some(({ id }) => id === first))
  const step = node === undefined ? undefined : stepsOf(node).find(({ id }) => id === first)
  const below = node?._tag === "Foreach" ? rest.slice(1) : rest
  if (step === undefined || below.length === 0) return step
  return step.body._tag === "Nested" ? findStep(step.body.graph, below.join(".")) : undefined
}
