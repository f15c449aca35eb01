// `@toolgate/core/steps`: one run, step by step.

export { factsOf } from '../gate/view-of.ts'
export {
  createSteps,
  type PrepareStep,
  type PrepareStepContext,
  type Step,
  type StepCall,
  type StepChange,
  type Steps,
  unchanged,
  withTools,
} from '../gate/steps.ts'
