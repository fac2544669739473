import { Scheduler } from '../src/index.js';

// Dispatches a few jobs for the handlers in handlers.ts. A process that only dispatches needs no handlers.

const scheduler = new Scheduler({ uri: process.env['MONGODB_URI'] ?? 'mongodb://127.0.0.1:27017/chronos' });

try {
  await scheduler.install();
} catch (error) {
  console.error((error as Error).message);
  process.exit(3);
}
await scheduler.dispatch('sendEmail', { to: 'ada@example.org', subject: 'Welcome' });
await scheduler.dispatch('sendEmail', { to: 'grace@example.org', subject: 'Welcome' }, { priority: 10 });
await scheduler.dispatch('generateReport', { name: 'November', pages: 5 });
await scheduler.dispatch('callFlakyService', { failures: 2 }, { retries: { base: '500ms', jitter: 'none' } });
await scheduler.dispatch('brewTea', { readyAt: new Date(Date.now() + 8000).toISOString() });
await scheduler.dispatch('ChargeCard', { amount: 42 }, { key: 'order-1001' });
await scheduler
  .delay('5s')
  .args({ to: 'later@example.org', subject: 'Five seconds later' })
  .dispatch('sendEmail');
await scheduler.stop();
