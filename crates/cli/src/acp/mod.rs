//! `plimsoll acp`: the agent of an editor, by the Agent Client Protocol over standard input and
//! output. The agent is the same as in `run` and `chat`. Only protocol messages are written to
//! standard output.

mod calls;
mod commands;
mod content;
mod permission;
mod replay;
mod server;
mod servers;
mod session;
mod transport;
mod updates;

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    CancelNotification, CloseSessionRequest, InitializeRequest, ListSessionsRequest,
    LoadSessionRequest, NewSessionRequest, PromptRequest, ResumeSessionRequest,
    SetSessionModeRequest,
};
use agent_client_protocol::{Agent, Error, Lines, on_receive_notification, on_receive_request};
use tokio::time::sleep;

use self::server::AcpServer;
use self::transport::{Outbox, incoming};
use crate::agent;
use crate::args::AcpArgs;
use crate::asked_to_end;
use crate::error::{CliError, DONE, INTERRUPTED};

/// Maximum time for closing the connection if the client does not read.
const ENDING: Duration = Duration::from_secs(5);

/// Runs the command.
pub(crate) async fn run(args: &AcpArgs) -> Result<u8, CliError> {
    if args.sources.flags.has("root") {
        return Err(CliError::usage(
            "an editor names a folder for each session, so --root has no effect; leave it out",
        ));
    }
    let mut sources = args.sources.clone();
    sources.consent(args.yes);
    let store = agent::store().await?;
    let (outbox, writer) = Outbox::start();
    let server = Arc::new(AcpServer::new(sources, store, Arc::clone(&outbox)));
    let lines = Lines::new(outbox.sink(), incoming(&outbox));
    let ended = serve(&server, lines).await;
    writer.end().await;
    match ended {
        // The client has closed the connection.
        Err(_) if outbox.has_failed() => Ok(DONE),
        Err(error) => Err(CliError::failed(format!("the connection failed: {error}"))),
        Ok(code) => Ok(code),
    }
}

/// Serves the connection until the client ends it or the process is interrupted.
async fn serve(
    server: &Arc<AcpServer>,
    transport: impl agent_client_protocol::ConnectTo<Agent> + 'static,
) -> Result<u8, Error> {
    let connection = Agent
        .v1()
        .name("plimsoll")
        .on_receive_request(
            async |request: InitializeRequest, responder, _| {
                responder.respond(server.initialize(&request))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: NewSessionRequest, responder, client| {
                let opening = Arc::clone(server).new_session(request, client);
                server.answer_opened(responder, opening)
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: LoadSessionRequest, responder, client| {
                let opening = Arc::clone(server).load(request, client);
                server.answer_opened(responder, opening)
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: ResumeSessionRequest, responder, client| {
                let opening = Arc::clone(server).resume(request, client);
                server.answer_opened(responder, opening)
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: CloseSessionRequest, responder, _| {
                server.answer(responder, Arc::clone(server).close(request))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: ListSessionsRequest, responder, _| {
                server.answer(responder, Arc::clone(server).list(request))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: SetSessionModeRequest, responder, _| {
                responder.respond_with_result(server.set_mode(&request))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: PromptRequest, responder, _| match server
                .prompt(request, responder.cancellation())
            {
                Ok(prompt) => server.answer(responder, prompt),
                Err(error) => responder.respond_with_error(error),
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async |request: CancelNotification, _| {
                server.cancel(&request);
                Ok(())
            },
            on_receive_notification!(),
        );
    let served = connection.connect_with(transport, async |client| {
        let code = tokio::select! {
            () = client.incoming_closed() => DONE,
            Ok(()) = asked_to_end() => INTERRUPTED,
        };
        server.close_all().await;
        Ok(code)
    });
    let late = async {
        server.closing().await;
        sleep(ENDING).await;
    };
    tokio::select! {
        served = served => served,
        () = late => Ok(DONE),
    }
}
