import { HttpProblem } from '../problem.js';
import { route, type Route } from '../route.js';
import { executionPage, executionParams, executionQuery, executionView } from '../schemas/executions.js';

export const executionRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/executions',
    operationId: 'listExecutions',
    summary: 'A page of attempts, the newest first',
    query: executionQuery,
    answer: executionPage,
    handle: ({ operations }, { query }) => operations.listExecutions({ ...query }),
  }),
  route({
    method: 'GET',
    path: '/executions/{id}',
    operationId: 'showExecution',
    summary: 'One attempt with its log lines',
    params: executionParams,
    answer: executionView,
    problems: [404],
    handle: async ({ operations }, { params: { id } }) => {
      const found = await operations.showExecution(id);
      if (found === null) throw new HttpProblem(404, 'EXECUTION_NOT_FOUND', `there is no attempt '${id}'`);
      return found;
    },
  }),
];
