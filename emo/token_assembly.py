"""From the files of a training to its token map and to its source of token states and rows."""

from dataclasses import dataclass
from pathlib import Path

from emo.alignment import Alignment, read_alignment, require_origin
from emo.distil_inputs import DistilInputs, given
from emo.encoder import Encoder, load_encoder
from emo.errors import ConfigError, DataError
from emo.layer_pairs import layer_pairs
from emo.online_teacher import OnlineRows, OnlineTeacher
from emo.requests import AlignmentRequest, RowRequest, SignalRequest
from emo.row_texts import compared_texts, content_texts
from emo.store import Store
from emo.store.keys import Keys
from emo.stored_tokens import StoredTokens, tokens_of
from emo.teacher_pass import require_teacher
from emo.texts import Text
from emo.token_source import StoredSource, TokenSource
from emo.tokens import TextTokenizer


@dataclass(frozen=True, slots=True)
class TokenAssembly:
    """Opens what a method asks for besides pooled vectors.

    Attributes:
        inputs: Files to read.
        student: The student.
        tokenizer: The student's tokenizer.
        signals: The teacher's signals; whether they hold token states decides whether these and
            attention rows are read, or the teacher is asked.
        keys: Store key of each text.
        folder: Where the teacher's tokens are kept meanwhile.
    """

    inputs: DistilInputs
    student: Encoder
    tokenizer: TextTokenizer
    signals: Store
    keys: Keys
    folder: Path

    def read_map(self, path: Path, request: AlignmentRequest) -> Alignment:
        """Read a token map.

        Raises:
            DataError: It is not the one asked for, or was made with other tokenizers.
        """
        alignment = read_alignment(path)
        require_origin(
            alignment.origin,
            path,
            method=request.method,
            form=request.text,
            teacher=self.signals.identity["tokenizer"],
            student=self.tokenizer.digest,
        )
        return alignment

    def source(self, request: SignalRequest) -> TokenSource | None:
        """Open what gives token states and attention rows; None if neither is asked for.

        Raises:
            ConfigError: A file is not given, or one that would not be read.
            DataError: A file does not fit the others or the method.
        """
        if request.alignment is None and request.rows is None:
            return None
        if "states" in self.signals.names:
            if self.inputs.teacher is not None:
                raise ConfigError(
                    f"{self.signals.folder}: holds the teacher's token states; leave out "
                    "--teacher, or store its signals with `states: online`"
                )
            return self._stored(request)
        if self.inputs.rows is not None:
            raise ConfigError(
                f"{self.signals.folder}: holds no token states, so the teacher gives attention "
                "rows, too; leave out --rows and give --teacher and --row-alignment"
            )
        return self._online(request)

    def _stored(self, request: SignalRequest) -> StoredSource:
        rows = None
        if request.rows is not None:
            rows = Store(given(self.inputs.rows, "attention rows", "--rows"))
            self._check_rows(rows, request.rows)
        return StoredSource(self.signals, self.keys, request.alignment is not None, rows)

    def _check_rows(self, store: Store, asked: RowRequest) -> None:
        """Rows of another request, student or teacher would often fit, and teach nonsense."""
        expected = {
            "request": asked.name,
            "signals": self.signals.digest,
            "student_layers": self.student.layers,
            "student_tokenizer": self.tokenizer.digest,
        }
        for name, value in expected.items():
            if store.identity[name] != value:
                told = f"{name} {store.identity[name]}, but the method asks for {value}"
                raise DataError(
                    f"{store.folder}: rows of {told}; give those that `emo teach-rows` makes for it"
                )

    def _online(self, request: SignalRequest) -> OnlineTeacher:
        told = "the teacher, since its store holds no token states"
        path = given(self.inputs.teacher, told, "--teacher")
        require_teacher(self.signals, path)
        teacher = load_encoder(path, self.signals.identity["dtype"], self.student.device)
        tokenizer = teacher.tokenizer()
        if tokenizer.digest != self.signals.identity["tokenizer"]:
            raise DataError(
                f"{path}: reads texts otherwise than when {self.signals.folder} was made; prepare "
                "the teacher again with `emo model`, or make the store again"
            )
        texts = tokens_of(self.inputs.texts, tokenizer, self.folder / "teacher-tokens")
        rows = None
        if request.rows is not None:
            rows = self._online_rows(request.rows, teacher, tokenizer, texts)
        states = texts if request.alignment is not None else None
        return OnlineTeacher(teacher, self.signals, self.keys, states, rows)

    def _online_rows(
        self,
        request: RowRequest,
        teacher: Encoder,
        teacher_tokenizer: TextTokenizer,
        texts: StoredTokens,
    ) -> OnlineRows:
        told = "the map that attention rows are selected from"
        path = given(self.inputs.row_alignment, told, "--row-alignment")
        normaliser = self.tokenizer if request.map.text == "normalised" else None

        def compared(read: list[Text]) -> list[Text]:
            return compared_texts(read, normaliser)

        def content(read: list[Text]) -> list[Text]:
            return content_texts(compared(read))

        where, out = self.inputs.texts, self.folder
        tokens = ranked = texts
        if normaliser is not None:
            folder = out / "teacher-normalised-tokens"
            tokens = ranked = tokens_of(where, teacher_tokenizer, folder, compared)
        if request.ranking == "content":
            ranked = tokens_of(where, teacher_tokenizer, out / "teacher-content-tokens", content)
        layers = [pair[1] for pair in layer_pairs(request, self.student.layers, teacher.layers)]
        return OnlineRows(request, layers, self.read_map(path, request.map), tokens, ranked)
